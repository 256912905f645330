"""Light, camera, picture and depth.

The picture comes from Cycles. The depth comes from one ray through the centre of each pixel; it equals
Cycles' Z pass (median difference 2 µm in a random room) and also names the object, which finds the floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np
from mathutils import Matrix, Vector

Point = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class View:
    """A pinhole camera: square pixels, principal point in the middle."""

    at: Point
    """Camera centre in the world."""
    target: Point
    """What the middle of the picture looks at."""
    width: int = 320
    """Picture width in pixels."""
    height: int = 240
    """Picture height in pixels."""
    focal: float = 262.0
    """Focal length in pixels of this picture."""
    roll: float = 0.0
    """Degrees the camera is tilted about its axis."""

    @property
    def intrinsics(self) -> np.ndarray:
        """[3, 3], pixel centres at integer coordinates."""
        return np.array(
            [[self.focal, 0, (self.width - 1) / 2], [0, self.focal, (self.height - 1) / 2], [0, 0, 1]], float
        )

    @property
    def pose(self) -> np.ndarray:
        """[4, 4] camera to world; camera axes x right, y down, z forward."""
        forward = np.array(self.target, float) - np.array(self.at, float)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0, 0, 1.0])
        right /= np.linalg.norm(right)
        down = np.cross(forward, right)
        angle = math.radians(self.roll)
        pose = np.eye(4)
        pose[:3, 0] = math.cos(angle) * right + math.sin(angle) * down
        pose[:3, 1] = -math.sin(angle) * right + math.cos(angle) * down
        pose[:3, 2], pose[:3, 3] = forward, self.at
        return pose


def empty_scene(samples: int, threads: int, exposure: float = 0.0) -> bpy.types.Scene:
    """A fresh file with Cycles on the CPU, denoising and a photographic tone curve."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.engine = "CYCLES"
    scene.cycles.device = "CPU"
    scene.cycles.samples = samples
    scene.cycles.use_denoising = True
    scene.cycles.denoiser = "OPENIMAGEDENOISE"
    scene.cycles.max_bounces = 6
    scene.cycles.filter_width = 1.2
    scene.cycles.sample_clamp_indirect = 6.0
    scene.render.threads_mode, scene.render.threads = "FIXED", threads
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGB"
    scene.view_settings.view_transform = "AgX"
    scene.view_settings.look = "AgX - Medium High Contrast"
    scene.view_settings.exposure = exposure
    return scene


def sky(strength: float, sun: float, elevation: float, azimuth: float, clouds: float = 0.0) -> None:
    """A daylight sky and a sun (W/m²) from `azimuth` (degrees, 0 = from +y, 90 = from +x)."""
    scene = bpy.context.scene
    world = scene.world or bpy.data.worlds.new("sky")
    scene.world = world
    world.use_nodes = True
    tree = world.node_tree
    background = next(n for n in tree.nodes if n.type == "BACKGROUND")
    where = tree.nodes.new("ShaderNodeTexCoord").outputs["Generated"]
    split = tree.nodes.new("ShaderNodeSeparateXYZ")
    tree.links.new(where, split.inputs[0])
    ramp = tree.nodes.new("ShaderNodeValToRGB")
    tree.links.new(split.outputs[2], ramp.inputs[0])
    ramp.color_ramp.elements[0].color = (0.62, 0.74, 0.88, 1)
    ramp.color_ramp.elements[1].color = (0.08, 0.22, 0.62, 1)
    ramp.color_ramp.elements[1].position = 0.7
    stretched = tree.nodes.new("ShaderNodeVectorMath")
    stretched.operation = "MULTIPLY"
    stretched.inputs[1].default_value = (1, 1, 3.2)
    tree.links.new(where, stretched.inputs[0])
    noise = tree.nodes.new("ShaderNodeTexNoise")
    noise.inputs["Scale"].default_value, noise.inputs["Detail"].default_value = 4.0, 8.0
    tree.links.new(stretched.outputs[0], noise.inputs["Vector"])
    cover = tree.nodes.new("ShaderNodeMapRange")
    cover.inputs["From Min"].default_value, cover.inputs["From Max"].default_value = 0.5, 0.68
    cover.inputs["To Max"].default_value = clouds
    tree.links.new(noise.outputs[0], cover.inputs[0])
    mixed = tree.nodes.new("ShaderNodeMix")
    mixed.data_type = "RGBA"
    tree.links.new(cover.outputs[0], mixed.inputs[0])
    tree.links.new(ramp.outputs[0], mixed.inputs[6])
    mixed.inputs[7].default_value = (1.0, 0.98, 0.96, 1)
    tree.links.new(mixed.outputs[2], background.inputs["Color"])
    background.inputs["Strength"].default_value = strength
    lamp = bpy.data.lights.new("sun", "SUN")
    lamp.energy, lamp.angle, lamp.color = sun, math.radians(1.0), (1.0, 0.93, 0.82)
    thing = bpy.data.objects.new("sun", lamp)
    thing.rotation_euler = (math.radians(elevation - 90), 0, -math.radians(azimuth))
    scene.collection.objects.link(thing)


def area_light(
    at: Point, towards: Point, size: tuple[float, float], power: float, colour: Point = (1, 1, 1)
) -> None:
    """A rectangular lamp of `power` watts that no camera ray sees."""
    lamp = bpy.data.lights.new("area", "AREA")
    lamp.shape, lamp.size, lamp.size_y, lamp.energy, lamp.color = "RECTANGLE", *size, power, colour
    thing = bpy.data.objects.new("area", lamp)
    thing.location = at
    thing.rotation_euler = (Vector(towards) - Vector(at)).to_track_quat("-Z", "Y").to_euler()
    thing.visible_camera = False
    bpy.context.scene.collection.objects.link(thing)


def point_light(at: Point, power: float, colour: Point = (1.0, 0.8, 0.55), radius: float = 0.08) -> None:
    """A small warm lamp, for lamp shades."""
    lamp = bpy.data.lights.new("point", "POINT")
    lamp.energy, lamp.color, lamp.shadow_soft_size = power, colour, radius
    thing = bpy.data.objects.new("point", lamp)
    thing.location = at
    bpy.context.scene.collection.objects.link(thing)


def aim(view: View) -> None:
    """Make `view` the scene's camera."""
    scene = bpy.context.scene
    camera = scene.camera or bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    if scene.camera is None:
        scene.collection.objects.link(camera)
        scene.camera = camera
    camera.data.sensor_fit, camera.data.sensor_width = "HORIZONTAL", 36.0
    camera.data.lens = 36.0 * view.focal / view.width
    camera.data.clip_start, camera.data.clip_end = 0.05, 2000.0
    # Blender's camera looks along −z with y up; ours along +z with y down.
    camera.matrix_world = Matrix((view.pose @ np.diag([1.0, -1.0, -1.0, 1.0])).tolist())
    scene.render.resolution_x, scene.render.resolution_y = view.width, view.height
    scene.render.resolution_percentage = 100


def picture(path: Path) -> None:
    """Render the scene's camera to a PNG file."""
    bpy.context.scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True)


def depth_and_names(view: View, farthest: float) -> tuple[np.ndarray, np.ndarray]:
    """([H, W] z depth in metres, 0 where nothing lies within `farthest`; [H, W] name of the object hit)."""
    scene = bpy.context.scene
    graph = bpy.context.evaluated_depsgraph_get()
    pose, (height, width) = view.pose, (view.height, view.width)
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(view.intrinsics).T @ pose[:3, :3].T
    origin, forward = Vector(view.at), Vector(pose[:3, 2].tolist())
    depth = np.zeros((height, width))
    names = np.full((height, width), "", dtype=object)
    for row in range(height):
        for column in range(width):
            direction = Vector(rays[row, column].tolist())
            hit, where, _, _, thing, _ = scene.ray_cast(graph, origin, direction)
            if hit:
                distance = (where - origin).dot(forward)
                if distance <= farthest:
                    depth[row, column], names[row, column] = distance, thing.name
    return depth, names


def largest_rectangle(mask: np.ndarray) -> tuple[int, int, int, int]:
    """(left, top, right, bottom), ends excluded, of the largest all-true rectangle in a [H, W] mask."""
    best, area = (0, 0, 0, 0), 0
    heights = np.zeros(mask.shape[1], int)
    for row, line in enumerate(mask):
        heights = np.where(line, heights + 1, 0)
        for left in range(mask.shape[1]):
            lowest = heights[left]
            for right in range(left, mask.shape[1]):
                lowest = min(lowest, heights[right])
                if lowest == 0:
                    break
                if lowest * (right + 1 - left) > area:
                    area = int(lowest * (right + 1 - left))
                    best = (left, int(row + 1 - lowest), right + 1, row + 1)
    return best
