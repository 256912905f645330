"""A picture of a scene: soft shadows, one bounce of light, reflections, glass, sky; depth to the surface in
the same pass.

Each pixel's centre is one ray; lamps send four shadow rays to it, the sun one, or eight where neighbours
disagree; every third pixel of each third row looks round for what other surfaces give (`Quality`). The light,
without the surfaces' colour, is averaged where it belongs together. Pixels that one sample does not describe
then get four.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gbpn.worlds.scene import Floats, Ints
from gbpn.worlds.tracing import Hits, Tracer
from gbpn.worlds.viewpoint import Viewpoint

if TYPE_CHECKING:
    from gbpn.worlds.surfaces import SurfacePoints

__all__ = ["Drawing", "Quality", "Shader"]

_MIRROR = 0.5
"""Share of mirror reflection from which a sensor's light is thrown on instead of coming back."""
_UNSETTLED, _SUN_RAYS = 0.04, 7
"""Difference from the neighbours, as a share of full sun, from which a pixel gets that many more rays."""
_LIFT = np.float32(2e-3)
"""Metres by which a ray starts above the surface that it leaves."""


@dataclass(frozen=True, kw_only=True)
class Quality:
    """How many rays."""

    shadows: int = 4
    """Shadow rays to each pixel."""
    bounces: int = 6
    """Looks round from every pixel that is asked."""
    stride: int = 3
    """Every how many pixels of a row and column are asked."""
    samples: int = 2
    """Finer samples across and down in pixels that one does not describe."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What a camera sees before its lens and sensor."""

    radiance: Floats
    """[H, W, 3] linear."""
    depth: Floats
    """[H, W] planar metres to the first surface: panes and mirrors count as what they are. 0 where nothing
    is."""
    through: Floats
    """[H, W] the same for light that passes panes and is thrown on by mirrors, as a depth sensor's is."""
    thing: Ints
    """[H, W] number of the thing at `depth`, −1 where nothing is."""


@dataclass(frozen=True, kw_only=True)
class _Layers:
    """What lies over the light of each pixel's surface."""

    dim: Floats
    """[H · W, 3] share of it that arrives."""
    shine: Floats
    """[H · W, 3] what reflections add."""
    thrown: Floats
    """[H · W] how far light goes that mirrors throw on."""


class Shader:
    """Draws one scene from many places."""

    def __init__(self, tracer: Tracer, quality: Quality | None = None) -> None:
        from gbpn.worlds.illumination import Lamps
        from gbpn.worlds.surfaces import Skin

        self.tracer = tracer
        self.skin = Skin(tracer.scene)
        self.lamps = Lamps(tracer.scene.lights)
        self.quality = quality or Quality()

    def draw(self, view: Viewpoint, seed: int) -> Drawing:
        """One picture; equal seeds give equal pictures."""
        height, width = view.height, view.width
        origins, directions = view.rays()
        solid = self.tracer.cast_through(origins, directions)
        pixel = 1 / float(view.intrinsics[0, 0])
        points = self.skin.look(solid, origins, directions, pixel)
        light = self._light(points, height, width, seed)
        light[~solid.found] = 0
        layers = _Layers(dim=np.ones_like(light), shine=np.zeros_like(light), thrown=solid.distance.copy())
        self._reflect(solid, points, view, layers, pixel, seed)
        first = self._behind_glass(solid, view, layers, pixel, seed)
        radiance = self._resolved(view, points, solid, light, layers, pixel)
        depth = np.where(first.found, first.distance, 0).reshape(height, width)
        through = np.where(np.isfinite(layers.thrown), layers.thrown, 0).reshape(height, width)
        thing = np.where(first.found, self.tracer.scene.mesh.thing[first.triangle], -1)
        return Drawing(
            radiance=radiance.reshape(height, width, 3),
            depth=depth.astype(np.float32),
            through=through.astype(np.float32),
            thing=thing.reshape(height, width).astype(np.int32),
        )

    def _light(self, points: SurfacePoints, height: int, width: int, seed: int) -> Floats:
        """[H · W, 3] irradiance / π: lamps, sun, and what the surfaces around give back."""
        from gbpn.worlds.denoising import enlarged, smoothed

        quality = self.quality
        direct = sum(self._lamplight(points, seed + 101 * k, k) for k in range(quality.shadows))
        direct = np.asarray(direct / np.float32(quality.shadows), np.float32)
        spare = np.empty_like(direct)
        for step in (1, 2):
            smoothed(direct, points.normal, points.place, height, width, step, np.float32(40), spare)
            direct, spare = spare, direct
        if self.lamps.suns:
            sun = self._sunlight(points, seed + 7)
            smoothed(sun, points.normal, points.place, height, width, 1, np.float32(80), spare)
            self._settle(sun, spare, points, seed + 8009)
            smoothed(sun, points.normal, points.place, height, width, 1, np.float32(80), spare)
            direct += 0.7 * sun + 0.3 * spare
        stride = quality.stride
        rows, columns = -(-height // stride), -(-width // stride)
        asked = (np.arange(rows)[:, None] * stride * width + np.arange(columns) * stride).ravel()
        small = self._round(points, asked, seed + 1009)
        spare_small = np.empty_like(small)
        normal, place = points.normal[asked], points.place[asked]
        for step in (1, 2, 4, 8):
            smoothed(small, normal, place, rows, columns, step, np.float32(15), spare_small)
            small, spare_small = spare_small, small
        enlarged(small, rows, columns, stride, points.normal, points.place, height, width, spare)
        return direct + spare

    def _settle(self, sun: Floats, around: Floats, points: SurfacePoints, seed: int) -> None:
        """More rays where one gave another answer than the neighbours': soft edges and shadows of wires."""
        differs = np.abs(sun[:, 1] - around[:, 1]) > _UNSETTLED * max(float(sun[:, 1].max()), 1e-6)
        asked = np.flatnonzero(differs)
        if not len(asked):
            return
        some = points.at(asked)
        total = sun[asked]
        for k in range(_SUN_RAYS):
            total = total + self._sunlight(some, seed + 17 * k)
        sun[asked] = total / np.float32(1 + _SUN_RAYS)

    def _round(self, points: SurfacePoints, asked: npt.NDArray[np.int64], seed: int) -> Floats:
        """[K, 3] light from other surfaces and the sky at some of the points."""
        from gbpn.worlds.illumination import bounced

        normal, flat = points.normal[asked], points.flat[asked]
        origins = points.place[asked] + flat * _LIFT
        total = np.zeros((len(asked), 3), np.float32)
        directions = np.zeros_like(total)
        for k in range(self.quality.bounces):
            bounced(normal, seed, k, directions)
            hits = self.tracer.cast_through(origins, directions)
            total += self._seen_light(hits, origins, directions, seed + 31 * k + 3)
        return np.asarray(total / np.float32(self.quality.bounces), np.float32)

    def _seen_light(self, hits: Hits, origins: Floats, directions: Floats, seed: int) -> Floats:
        """[R, 3] light that comes along rays from lit surfaces, whose own surroundings are taken as even."""
        surface = self.skin.look(hits, origins, directions, 0.05)
        direct = self._lamplight(surface, seed, 0)
        if self.lamps.suns:
            direct += self._sunlight(surface, seed + 5)
        np.minimum(direct, 6.0, out=direct)
        found = hits.found
        # What further bounces bring: as if all around had the light and colour that this ray's fellows met.
        share = surface.albedo[found].mean(axis=0) if found.any() else np.zeros(3)
        level = (surface.albedo[found] * direct[found]).mean(axis=0) if found.any() else np.zeros(3)
        around = (level / (1 - np.minimum(share, 0.85))).astype(np.float32)
        out = surface.albedo * (direct + around)
        if self.skin.sky[10] > 0:
            out[~found] = self.skin.sky_towards(directions[~found])
        return np.asarray(out, np.float32)

    def _lamplight(self, points: SurfacePoints, seed: int, sample: int) -> Floats:
        """[R, 3] light of the rectangles, one shadow ray each."""
        from gbpn.worlds.illumination import lit_by_areas

        light = np.zeros_like(points.place)
        if not len(self.lamps.areas) or not len(light):
            return light
        origins, directions = np.zeros_like(light), np.zeros_like(light)
        lit_by_areas(
            points.place,
            points.normal,
            points.flat,
            self.lamps.areas,
            seed,
            sample,
            origins,
            directions,
            light,
        )
        self._shadow(light, origins, directions, 0.995)
        return light

    def _sunlight(self, points: SurfacePoints, seed: int) -> Floats:
        from gbpn.worlds.illumination import lit_by_sun

        total = np.zeros_like(points.place)
        for sun in self.lamps.suns:
            light, origins, directions = (np.zeros_like(total) for _ in range(3))
            towards, radiance = np.array(sun.direction, np.float32), np.array(sun.radiance, np.float32)
            lit_by_sun(
                points.place,
                points.normal,
                points.flat,
                towards,
                sun.spread,
                radiance,
                seed,
                origins,
                directions,
                light,
            )
            self._shadow(light, origins, directions, 1e6)
            total += light
        return total

    def _shadow(self, light: Floats, origins: Floats, directions: Floats, limit: float) -> None:
        """No light where something is in the way."""
        asked = np.flatnonzero(light[:, 1] > 1e-5)
        dark = self.tracer.blocked(origins[asked], directions[asked], limit)
        light[asked[dark]] = 0

    def _reflect(
        self, solid: Hits, points: SurfacePoints, view: Viewpoint, layers: _Layers, pixel: float, seed: int
    ) -> None:
        """Adds what glossy surfaces reflect; depth goes on where a mirror throws a sensor's light away."""
        from gbpn.worlds.illumination import mirrored

        directions = view.rays()[1]
        height, width = view.height, view.width

        facing = _facing(directions, points.normal)
        rough, mirror = points.gloss[:, 0], points.gloss[:, 1]
        share = np.where(mirror > 0, mirror + (1 - mirror) * (1 - facing) ** 5 * (1 - rough) ** 2, 0)
        shiny = np.flatnonzero((share > 0.02) & solid.found)
        if not len(shiny):
            return
        out = np.zeros((len(shiny), 3), np.float32)
        mirrored(directions[shiny], points.normal[shiny], points.flat[shiny], rough[shiny], seed + 77, out)
        start = points.place[shiny] + points.flat[shiny] * _LIFT
        met = self.tracer.cast_through(start, out)
        layers.shine[shiny] = self._reflected(met, start, out, pixel, seed) * share[shiny, None].astype(
            np.float32
        )
        self._even(layers, points, rough, height, width)
        layers.dim[shiny] = (1 - share[shiny, None]).astype(np.float32)
        lost = mirror[shiny] >= _MIRROR
        layers.thrown[shiny[lost]] += met.distance[lost]

    @staticmethod
    def _even(layers: _Layers, points: SurfacePoints, rough: Floats, height: int, width: int) -> None:
        """Takes the noise out of reflections that are spread: one ray a pixel has met this or that."""
        from gbpn.worlds.denoising import smoothed

        spread = rough > 0.08
        if not (spread & (layers.shine[:, 1] > 0)).any():
            return
        even, spare = np.minimum(layers.shine, 2.0), np.empty_like(layers.shine)
        for step in (1, 2, 5):
            smoothed(even, points.normal, points.place, height, width, step, np.float32(60), spare)
            even, spare = spare, even
        layers.shine[spread] = even[spread]

    def _reflected(self, met: Hits, start: Floats, out: Floats, pixel: float, seed: int) -> Floats:
        """[R, 3] light along reflected rays: with more shadow rays than bounces have, as it is seen."""
        surface = self.skin.look(met, start, out, 2 * pixel)
        light = sum(self._lamplight(surface, seed + 53 * k, k) for k in range(2)) / np.float32(2)
        if self.lamps.suns:
            light = light + self._sunlight(surface, seed + 11)
        around = np.minimum(light, 4).mean(axis=0) * 0.5
        seen = surface.albedo * (light + around + surface.gloss[:, 3:4])
        seen[~met.found] = self.skin.sky_towards(out[~met.found])
        return np.asarray(np.minimum(seen, 8.0), np.float32)

    def _behind_glass(self, solid: Hits, view: Viewpoint, layers: _Layers, pixel: float, seed: int) -> Hits:
        """Dims what lies behind panes and adds what they reflect. Returns what is met first."""
        from gbpn.worlds.denoising import without_sparks
        from gbpn.worlds.illumination import mirrored

        if not self.tracer.has_panes:
            return solid
        origins, directions = view.rays()
        pane = self.tracer.cast_panes(origins, directions)
        nearer = pane.distance < solid.distance
        front = np.flatnonzero(nearer)
        if len(front):
            own = Hits(
                distance=pane.distance[front], triangle=pane.triangle[front], u=pane.u[front], v=pane.v[front]
            )
            glass = self.skin.look(own, origins[front], directions[front], pixel)
            share = 0.04 + 0.96 * (1 - _facing(directions[front], glass.normal)[:, None]) ** 5
            out = np.zeros((len(front), 3), np.float32)
            mirrored(
                directions[front], glass.normal, glass.flat, np.zeros(len(front), np.float32), seed + 79, out
            )
            start = glass.place + glass.flat * _LIFT
            seen = self._reflected(self.tracer.cast_through(start, out), start, out, pixel, seed + 500)
            without_sparks(seen, front, view.height, view.width)
            tint = glass.albedo / np.maximum(glass.albedo.max(axis=1, keepdims=True), 0.05)
            kept = (1 - share) * glass.gloss[:, 2:3] * tint
            layers.shine[front] = layers.shine[front] * kept + share * seen
            layers.dim[front] *= kept
        return Hits(
            distance=np.where(nearer, pane.distance, solid.distance),
            triangle=np.where(nearer, pane.triangle, solid.triangle),
            u=np.where(nearer, pane.u, solid.u),
            v=np.where(nearer, pane.v, solid.v),
        )

    def _resolved(
        self,
        view: Viewpoint,
        points: SurfacePoints,
        solid: Hits,
        light: Floats,
        layers: _Layers,
        pixel: float,
    ) -> Floats:
        """[H · W, 3] radiance: one sample a pixel, several where one does not describe it."""
        from gbpn.worlds.denoising import rough_pixels, shared

        height, width, fine = view.height, view.width, self.quality.samples
        albedo, emission = self._with_sky(points, solid, view.rays()[1])
        out = layers.dim * albedo * (light + emission[:, None]) + layers.shine
        np.minimum(out, 8.0, out=out)
        thing = np.where(solid.found, self.tracer.scene.mesh.thing[solid.triangle], -1)
        several = np.zeros(height * width, bool)
        rough_pixels(thing, solid.distance, points.normal, albedo, height, width, several)
        chosen = np.flatnonzero(several)
        if fine < 2 or not len(chosen):
            return out
        out[chosen] = 0
        for dy, dx in np.ndindex(fine, fine):
            x = chosen % width + (dx + 0.5) / fine - 0.5
            y = chosen // width + (dy + 0.5) / fine - 0.5
            origins, directions = view.rays_through(x, y)
            hits = self.tracer.cast_through(origins, directions)
            sample = self.skin.look(hits, origins, directions, pixel / fine)
            colour, shown = self._with_sky(sample, hits, directions)
            shared(
                chosen, colour, sample.normal, sample.place, shown, light, layers.dim, layers.shine,
                points.normal, points.place, height, width, out,
            )  # fmt: skip
        out[chosen] /= np.float32(fine * fine)
        return out

    def _with_sky(self, points: SurfacePoints, hits: Hits, directions: Floats) -> tuple[Floats, Floats]:
        """Colour and emission, with the sky as a surface that shines where there is nothing."""
        albedo, emission = points.albedo, points.gloss[:, 3]
        empty = ~hits.found
        if empty.any():
            albedo, emission = albedo.copy(), emission.copy()
            albedo[empty], emission[empty] = self.skin.sky_towards(directions[empty]), 1.0
        return albedo, emission


def _facing(directions: Floats, normals: Floats) -> Floats:
    """[R] cosine between a surface's normal and where the ray came from."""
    speed = np.linalg.norm(directions, axis=1)
    return np.asarray(np.clip(-np.einsum("ij,ij->i", directions, normals) / speed, 0, 1), np.float32)
