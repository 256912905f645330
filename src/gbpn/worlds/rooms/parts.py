"""Which models of the furniture libraries play which part in a room, by their names, categories and sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from gbpn.worlds.assets import Asset, Stock

__all__ = ["ROLES", "playing"]

ROLES: dict[str, str] = {
    "sofa": (
        "Sofa; Couch; Burlap sofa; Clear sofa; Winchester sofa; Sofa 2 seats; Sofa 3 seats; "
        "Convertible sofa BZ; Futon couch; Day bed"
    ),
    "armchair": "Armchair; Modern armchair; Winchester armchair; Armchair ottoman; Puff",
    "coffee table": "Coffee table",
    "tv": "TV; TV 16:9",
    "tv stand": "TV stand; Box; Television cabinet",
    "bookcase": "Bookcase; Full bookcase; Vertical shelves; Shelves",
    "sideboard": "Dresser with drawers; Chest; Cupboard; Chest of drawers",
    "plant": ("Plant; Decorative plant; Ficus; Yucca; Indoor plant; Spathiphyllum; Bamboo; Christmas tree"),
    "small plant": (
        "Little plant; Cactus; Bonsai tree; Flowers; Orchids; Tulips; White lily; Succulent plant; "
        "Spider plant; Decorative plant"
    ),
    "table": (
        "Table; Oak table; Round table; Black table; Glass table; Folding table; Table on trestles; "
        "Table with tablecloth; Wooden table; Wooden alder table; Wooden teak table"
    ),
    "chair": ("Chair; Chair with cushion; Oak chair; Osaka chair; Plastic chair; Folding chair; Cafe chair"),
    "stool": "Stool; Bar stool; Bar chair",
    "bed": "Bed; Iron bed; Captain's bed; Child bed; Bunk bed",
    "child bed": "Child bed; Crib; Baby bed; Bunk bed",
    "bedside": "Bedside table",
    "wardrobe": "Wardrobe",
    "dressing table": "Dressing table",
    "desk": "Desk; Desk table; Wooden desk",
    "office chair": "Chair; Armchair; Class seat",
    "filing": "Filing cabinet; Safe; Drawers cabinet",
    "office thing": (
        "Laptop; Phone; Letter tray; Penbox; Calendar; Inkjet printer and scanner; Stapler; Desk "
        "lamp; Scissors; Apple iMac 1998; Apple iMac 2004; Headphones"
    ),
    "cooker": "Large stove; Double oven; Propane stove; Oven",
    "fridge": "Fridge; Large fridge; Refrigerator",
    "washer": "Clothes washing machine; Dryer machine; Washing machine",
    "kitchen thing": (
        "Blender; Bread box; Coffee brewer; Coffee maker; Coffee mug; Cooker; Deep fryer; Kitchen "
        "scale; Microwave; Mixer; Paper towel holder; Toaster; Teapot; Utensils pot; Knife stand; "
        "Spice tower; Chopping board; Coffee machine; Large pan; Milk; Wine bottle; Bowl with fruits; "
        "Bread; Old jar; Oil servers; Boiler; Espresso kettle; Small oven"
    ),
    "tableware": (
        "Plate; Plate, glass and cutlery; Plate, glasses and cutlery; Cup; Coffee cup; Glass; Bowl; "
        "Bowl with fruits; Bowl with salad; Wine bottle; Beer bottle; Beer glass; Teapot; Bread; "
        "Hamburger; Roasted chicken; Tray; Oval plate; Candle; Flowers; Tulips; Birthday cake; Milk; "
        "Coffee mug; Salt shaker; Yogurt bottle; Vase"
    ),
    "bath": "Bath; Island bath; Corner bathtub",
    "shower": "Shower stall",
    "toilet": "Toilets unit",
    "bidet": "Bidet",
    "basin": "Washbasin; Vanity; Double vanity",
    "bath thing": (
        "Bottle; Cosmetics pot; Flacon; Soap; Sponge; Medicine bottle; Medicine box; Towel; Brush; Lip stick"
    ),
    "bath floor": "Clothes basket; Potty; Dustbin; Bullet trash can",
    "towel rack": "Towel rack",
    "toy": (
        "Teddy bear; Car model; Toy train; Xylophone; Doll; Wood toy; Rubik's cube; Soccer ball; "
        "Basketball; Doll house; Rocking horse; Helmet; Biplane; Puzzle; Tricycle"
    ),
    "clothes": (
        "Folded clothes; Sneakers; Slippers; Handbag; Backpack; Hat; Cap; Bootie; Mocassin; Woman "
        "shoes; Suitcase; Briefcase; Jacket; Trousers; Short; Skirt"
    ),
    "lived": (
        "Book; Vase; Radio; Mini stereo; Wireless phone; TV remote control; Newspaper; Glasses; "
        "Reflex camera; Camera; Tablet; Chessboard; Candle; Clock; Gift; DVD player; PlayStation; "
        "Speaker; Table fan; Frame Chambord; Deer; Thermometer; Headphones; Tape; Keys"
    ),
    "table lamp": "Lamp; Little lamp; Desk lamp; Pedestal vase lamp",
    "floor thing": (
        "Basketball; Soccer ball; Backpack; Suitcase; Cardboard box; Open cardboard box; Crate; "
        "Dustbin; Recycling bin; Electric guitar; Speaker; Umbrella; Vase; Shopping basket; Stool; "
        "Skateboard; Trunck; Box; Handbag; Sneakers; Puff"
    ),
    "storage thing": (
        "Cardboard box; Open cardboard box; Crate; Step ladder; Small step ladder; Barrel; Bicycle; "
        "Bike; Broom; Suitcase; Trunck; Workbench; Pallet; Stroller; Electric water heater; Furnace; "
        "Mower; Extinguisher; Punching ball; Wood logs"
    ),
    "exercise": (
        "Indoor bike; Treadmill; Abdominal bench; Punching ball; Fitness tower; Table tennis; "
        "Football table; Pool table; Flipper"
    ),
    "special": (
        "Upright piano; Grand piano; Fireplace; Aquarium; Water cooler; Clothes horse; Clothes rack; "
        "Christmas tree; Indoor bike; Electric guitar; Wheelchair; Baby high chair; Changing table"
    ),
    "bench": "Bench; Piano bench; Painted bench",
    "ceiling lamp": "Hanging light; Pendant lamp; Chandelier lamp; Lamp; Ceiling fan; Ceiling lamp",
    "wall thing": (
        "Cuckoo clock; Wall light; Air conditioning - Internal unit; Dart game; Extinguisher; Wall "
        "hanger; Intercom; Smoke detector"
    ),
    "radiator": "Radiator",
    "person": ("Female; Male; Holding female; Holding male; Boy; Girl; Cat; Dog; Siamese cat; Bulldog"),
}
"""Names in the libraries' catalogues, one after the other."""
_CATEGORIES: dict[str, str] = {
    "sofa": "Living room",
    "tv stand": "Living room",
    "bookcase": "Living room; Bedroom; Office",
    "table": "Living room; Office",
    "chair": "Living room; Exterior",
    "desk": "Office",
    "office chair": "Office",
    "bed": "Bedroom",
    "person": "Characters",
    "bench": "Living room; Exterior",
    "table lamp": "Lights",
    "ceiling lamp": "Lights; Miscellaneous",
    "armchair": "Living room",
    "stool": "Kitchen; Living room",
    "plant": "Living room",
    "sideboard": "Living room; Bedroom",
    "radiator": "Miscellaneous; Bathroom",
    "storage thing": "Miscellaneous; Vehicles; Kitchen",
    "oven": "Kitchen",
    "floor thing": "Miscellaneous; Bedroom; Living room; Kitchen; Office; Vehicles",
}
"""Where only some of those that have the name do."""
_SIZES: dict[str, Callable[[tuple[float, float, float]], bool]] = {
    "table": lambda s: 0.6 < s[2] < 0.95 and min(s[:2]) > 0.55,
    "ceiling lamp": lambda s: s[2] < 1.2 and s[0] < 1.0,
    "table lamp": lambda s: s[2] < 0.8,
    "tv stand": lambda s: s[2] < 1.2,
    "plant": lambda s: s[2] > 0.5,
    "small plant": lambda s: s[2] < 0.65,
    "toy": lambda s: s[2] < 0.9,
    "bookcase": lambda s: s[2] > 0.7,
    "floor thing": lambda s: s[2] < 1.15 and max(s[:2]) < 1.1,
    "kitchen thing": lambda s: max(s) < 0.62,
    "desk": lambda s: s[2] < 1.2,
    "radiator": lambda s: s[2] < 0.9 and s[1] < 0.26,
    "clothes": lambda s: s[2] < 0.8,
}


@lru_cache(maxsize=256)
def playing(stock: Stock, role: str) -> tuple[Asset, ...]:
    """Assets of a stock that play a part."""
    categories, fits = _CATEGORIES.get(role), _SIZES.get(role)
    return tuple(
        asset
        for asset in stock.named(*ROLES[role].split("; "))
        if (categories is None or asset.category in categories.split("; "))
        and (fits is None or fits(asset.size))
        and max(asset.size) < 3.4
    )
