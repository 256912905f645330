"""Rooms and streets made of packages' models, drawn by ray tracing with their exact depth.

`scene` says what there is, `tracing` finds what a ray meets, `shading` makes light of it, `lens` a
photograph. Rooms are furnished in
`rooms/`, streets in `streets/`; every model's creator and licence goes along (`credits`).

World coordinates are metres with z up. A camera looks along its own z, with x to the right and y down, as
the loaders have it.
"""
