"""Procedural surfaces: paint, wood, tiles, cloth, brick, asphalt. Colours are linear RGB in [0, 1]."""

from __future__ import annotations

import bpy

Colour = tuple[float, float, float]


class _Graph:
    """A material under construction: `node` adds one and wires what it is given."""

    def __init__(self, name: str, roughness: float) -> None:
        self.material = bpy.data.materials.new(name)
        self.material.use_nodes = True
        self._tree = self.material.node_tree
        self.surface = next(n for n in self._tree.nodes if n.type == "BSDF_PRINCIPLED")
        self.surface.inputs["Roughness"].default_value = roughness

    def node(self, kind: str, inputs: dict | None = None, **settings: object) -> bpy.types.Node:
        made = self._tree.nodes.new(f"ShaderNode{kind}")
        for key, value in settings.items():
            setattr(made, key, value)
        for key, value in (inputs or {}).items():
            self.set(made, key, value)
        return made

    def set(self, node: bpy.types.Node, key: str | int, value: object) -> None:
        """Wire a socket or set a value; a colour gains its alpha."""
        socket = node.inputs[key]
        if isinstance(value, bpy.types.NodeSocket):
            self._tree.links.new(value, socket)
        elif socket.type == "RGBA" and len(value) == 3:  # type: ignore[arg-type]
            socket.default_value = (*value, 1.0)  # type: ignore[misc]
        else:
            socket.default_value = value

    def mix(self, factor: object, a: object, b: object, how: str = "MIX") -> bpy.types.NodeSocket:
        mixed = self.node("Mix", data_type="RGBA", blend_type=how)
        for key, value in ((0, factor), (6, a), (7, b)):
            self.set(mixed, key, value)
        return mixed.outputs[2]

    def arithmetic(self, how: str, a: object, b: object) -> bpy.types.NodeSocket:
        return self.node("Math", {0: a, 1: b}, operation=how).outputs[0]

    def position(self, scale: Colour = (1, 1, 1)) -> bpy.types.NodeSocket:
        """World position times `scale`, so that neighbouring surfaces continue each other."""
        where = self.node("NewGeometry").outputs["Position"]
        return self.node("VectorMath", {0: where, 1: scale}, operation="MULTIPLY").outputs[0]

    def upright(self) -> bpy.types.NodeSocket:
        """(x + y, z, 0): the coordinates of any wall that stands along x or y."""
        where = self.node("SeparateXYZ", {0: self.position()})
        along = self.arithmetic("ADD", where.outputs[0], where.outputs[1])
        return self.node("CombineXYZ", {0: along, 1: where.outputs[2]}).outputs[0]

    def noise(self, vector: object, scale: float, detail: float = 4.0) -> bpy.types.NodeSocket:
        return self.node("TexNoise", {"Vector": vector, "Scale": scale, "Detail": detail}).outputs[0]

    def bump(self, height: object, strength: float, distance: float = 0.01) -> None:
        bumped = self.node("Bump", {"Height": height, "Strength": strength, "Distance": distance})
        self.set(self.surface, "Normal", bumped.outputs[0])

    def finish(self, colour: object) -> bpy.types.Material:
        self.set(self.surface, "Base Color", colour)
        return self.material


def _times(colour: Colour, factor: float) -> Colour:
    return (min(1.0, colour[0] * factor), min(1.0, colour[1] * factor), min(1.0, colour[2] * factor))


def paint(colour: Colour, roughness: float = 0.6, unevenness: float = 0.12) -> bpy.types.Material:
    """Painted plaster or lacquer: slightly cloudy, with fine grain."""
    graph = _Graph("paint", roughness)
    cloud = graph.noise(graph.position(), 1.3)
    graph.bump(graph.noise(graph.position(), 90.0), 0.15, 0.004)
    return graph.finish(graph.mix(cloud, _times(colour, 1 - unevenness), _times(colour, 1 + unevenness)))


def gloss(colour: Colour, roughness: float = 0.15, metallic: float = 0.0) -> bpy.types.Material:
    """Car paint, metal, dark window panes."""
    graph = _Graph("gloss", roughness)
    graph.surface.inputs["Metallic"].default_value = metallic
    return graph.finish(colour)


def glow(colour: Colour, strength: float) -> bpy.types.Material:
    """A surface that shines, like a lamp shade or a screen."""
    graph = _Graph("glow", 0.5)
    graph.set(graph.surface, "Emission Color", colour)
    graph.surface.inputs["Emission Strength"].default_value = strength
    return graph.finish(colour)


def cloth(colour: Colour, weave: float = 250.0) -> bpy.types.Material:
    """Woven cloth, carpet or a towel: matt, fine grain; a low `weave` number is coarse."""
    graph = _Graph("cloth", 0.95)
    grain = graph.noise(graph.position(), weave, 2.0)
    cloud = graph.noise(graph.position(), 3.0)
    graph.bump(grain, 0.6, 0.01)
    speckled = graph.mix(grain, _times(colour, 0.55), _times(colour, 1.35))
    return graph.finish(graph.mix(graph.arithmetic("MULTIPLY", cloud, 0.3), speckled, _times(colour, 0.6)))


def planks(light: Colour, dark: Colour, along_x: bool = False, width: float = 0.13) -> bpy.types.Material:
    """Floor boards with grain, each board its own shade."""
    graph = _Graph("planks", 0.35)
    where = graph.node("SeparateXYZ", {0: graph.position()}).outputs
    first, second = (where[0], where[1]) if along_x else (where[1], where[0])
    flat = graph.node("CombineXYZ", {0: first, 1: second}).outputs[0]
    boards = graph.node(
        "TexBrick",
        {
            "Vector": flat,
            "Color1": (0, 0, 0),
            "Color2": (1, 1, 1),
            "Mortar": (0.5, 0.5, 0.5),
            "Scale": 1.0,
            "Mortar Size": 0.0025,
            "Brick Width": 1.4,
            "Row Height": width,
        },
        offset=0.37,
    )
    stretched = graph.node("VectorMath", {0: flat, 1: (3.0, 60.0, 1.0)}, operation="MULTIPLY").outputs[0]
    shifted = graph.node("VectorMath", {0: stretched, 1: boards.outputs[0]}, operation="ADD").outputs[0]
    grain = graph.noise(shifted, 1.0, 6.0)
    shade = graph.arithmetic("ADD", graph.arithmetic("MULTIPLY", boards.outputs[0], 0.45), grain)
    shade = graph.arithmetic("SUBTRACT", shade, 0.22)
    wood = graph.mix(shade, dark, light)
    graph.bump(grain, 0.12, 0.003)
    return graph.finish(graph.mix(boards.outputs["Fac"], wood, _times(dark, 0.25)))


def tiles(
    first: Colour,
    second: Colour,
    grout: Colour,
    size: float = 0.3,
    upright: bool = False,
    height: float = 0.0,
) -> bpy.types.Material:
    """Square tiles (or `height` metres high) between two shades; on the floor or upright."""
    graph = _Graph("tiles", 0.22)
    vector = graph.upright() if upright else graph.position()
    laid = graph.node(
        "TexBrick",
        {
            "Vector": vector,
            "Color1": first,
            "Color2": second,
            "Mortar": grout,
            "Scale": 1.0,
            "Mortar Size": 0.004,
            "Mortar Smooth": 0.1,
            "Brick Width": size,
            "Row Height": height or size,
        },
        offset=0.5 if height else 0.0,
    )
    cloud = graph.mix(0.35, laid.outputs[0], graph.noise(graph.position(), 9.0), "SOFT_LIGHT")
    graph.bump(graph.arithmetic("SUBTRACT", 1.0, laid.outputs["Fac"]), 0.5, 0.004)
    return graph.finish(cloud)


def bricks(first: Colour, second: Colour, mortar: Colour = (0.45, 0.42, 0.38)) -> bpy.types.Material:
    """A brick wall in running bond."""
    graph = _Graph("bricks", 0.9)
    laid = graph.node(
        "TexBrick",
        {
            "Vector": graph.upright(),
            "Color1": first,
            "Color2": second,
            "Mortar": mortar,
            "Scale": 1.0,
            "Mortar Size": 0.009,
            "Mortar Smooth": 0.3,
            "Brick Width": 0.24,
            "Row Height": 0.075,
        },
    )
    rough = graph.noise(graph.position(), 40.0)
    graph.bump(graph.arithmetic("SUBTRACT", rough, laid.outputs["Fac"]), 0.7, 0.008)
    return graph.finish(graph.mix(0.5, laid.outputs[0], rough, "OVERLAY"))


def wallpaper(ground: Colour, stripe: Colour, width: float = 0.11) -> bpy.types.Material:
    """Vertical stripes of two widths, with a faint paper grain."""
    graph = _Graph("wallpaper", 0.8)
    along = graph.node("SeparateXYZ", {0: graph.upright()}).outputs[0]
    phase = graph.arithmetic("WRAP", graph.arithmetic("DIVIDE", along, width), 1.0)
    band = graph.arithmetic("LESS_THAN", phase, 0.42)
    line = graph.arithmetic("COMPARE", phase, 0.72)
    line.node.inputs[2].default_value = 0.05
    striped = graph.mix(graph.arithmetic("ADD", band, line), ground, stripe)
    return graph.finish(graph.mix(0.12, striped, graph.noise(graph.position(), 50.0), "OVERLAY"))


def ornament(first: Colour, second: Colour, third: Colour, scale: float = 4.0) -> bpy.types.Material:
    """A woven pattern for rugs and cushions."""
    graph = _Graph("ornament", 0.95)
    cells = graph.node(
        "TexVoronoi", {"Vector": graph.position((1, 1, 0)), "Scale": scale}, distance="MANHATTAN"
    )
    cells.inputs["Randomness"].default_value = 0.0
    ring = graph.arithmetic("PINGPONG", cells.outputs["Distance"], 0.14)
    inner = graph.mix(graph.arithmetic("GREATER_THAN", ring, 0.075), first, second)
    pattern = graph.mix(graph.arithmetic("GREATER_THAN", cells.outputs["Distance"], 0.44), inner, third)
    grain = graph.noise(graph.position(), 220.0, 2.0)
    graph.bump(grain, 0.6, 0.008)
    return graph.finish(graph.mix(0.5, pattern, grain, "OVERLAY"))


def painting(first: Colour, second: Colour, third: Colour, seed: float) -> bpy.types.Material:
    """An abstract picture: two warped fields of colour."""
    graph = _Graph("painting", 0.6)
    where = graph.node("VectorMath", {0: graph.upright(), 1: (seed, 0.7 * seed, 0)}, operation="ADD").outputs[
        0
    ]
    field = graph.noise(where, 2.6, 2.0)
    strokes = graph.noise(
        graph.node("VectorMath", {0: where, 1: (2, 9, 1)}, operation="MULTIPLY").outputs[0], 2.0
    )
    mixed = graph.mix(graph.arithmetic("GREATER_THAN", field, 0.5), first, second)
    return graph.finish(graph.mix(graph.arithmetic("GREATER_THAN", strokes, 0.57), mixed, third))


def asphalt(colour: Colour = (0.085, 0.085, 0.09)) -> bpy.types.Material:
    """Road surface: fine stones, worn patches and darker seams."""
    graph = _Graph("asphalt", 0.85)
    stones = graph.noise(graph.position(), 45.0, 8.0)
    worn = graph.noise(graph.position((1.2, 0.12, 1)), 1.0, 6.0)
    patches = graph.arithmetic("GREATER_THAN", graph.noise(graph.position((0.5, 0.1, 1)), 1.0, 1.0), 0.6)
    graph.bump(stones, 0.5, 0.01)
    speckled = graph.mix(stones, _times(colour, 0.35), _times(colour, 1.8))
    streaked = graph.mix(graph.arithmetic("MULTIPLY", worn, 0.8), speckled, _times(colour, 2.4))
    return graph.finish(graph.mix(graph.arithmetic("MULTIPLY", patches, 0.45), streaked, _times(colour, 0.4)))


def foliage(colour: Colour) -> bpy.types.Material:
    """Leaves: each patch its own green."""
    graph = _Graph("foliage", 0.7)
    cloud = graph.noise(graph.position(), 6.0, 3.0)
    return graph.finish(graph.mix(cloud, _times(colour, 0.4), _times(colour, 1.8)))
