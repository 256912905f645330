"""Streets of one's own design: roads, houses, cars, people, plants and light, all of them made from numbers.

`street` plans one from its number; `ground`, `houses` (with `openings` and `roofs`), `cars`, `figures`,
`plants`, `furniture` and `traffic` make what is put into it, by `assembly`, along a `course`, in materials
of a `palette` with painted `textures`, under a `daylight`. `viewing` says where pictures are taken from.
"""
