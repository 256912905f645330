"""A conversation with a studio whose model is on another device than what it sends."""

from __future__ import annotations

import numpy as np
from talking import MORE, TABLE, opened, running, session_of

import gbpn
from gbpn.studio import protocol
from gbpn.studio.limits import Limits


def test_all_that_is_asked_of_a_studio(second_device: str, thin: gbpn.DepthCompleter) -> None:
    away = gbpn.DepthCompleter(thin.model, device=second_device)
    session = session_of(thin, MORE)
    with running(away, limits=Limits(workers=2)) as server, opened(server) as client:
        client.points(TABLE)
        answer = client.points(MORE)
        np.testing.assert_allclose(answer.depth, session.depth, rtol=2e-3)
        np.testing.assert_allclose(answer.confidence, session.confidence, atol=2e-3)
        found = client.ask(protocol.Suggest, count=2)
        assert found.x.tolist() == [one.x for one in session.suggest(2)]
        still = client.ask(protocol.Film)
        assert still.number == 0
        for _ in range(1, still.count):
            assert isinstance(client.receive(), protocol.FilmStill)
        for to in ("first", "exact"):
            assert client.ask(protocol.Compare, to=to).depth.shape == (64, 96)
        assert isinstance(client.ask(protocol.FindOutliers, limit=1.5), protocol.Outliers)
        for what in client.welcome.exports:
            message = client.ask(protocol.Export, what=what)
            told = "confidence" if what == "std.npy" else ""  # the thin model is not calibrated
            assert isinstance(message, protocol.Failed if told else protocol.File), message
            assert told in getattr(message, "message", "")
