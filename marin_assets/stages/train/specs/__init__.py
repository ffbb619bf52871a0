"""The parts of a training's config, and their checks, which read no file. May import `errors` and `marin_assets.step`.

model          shapes of models, of all families, and of a folder's
presets        models by name, from nano to 70 B
mixture        which caches are trained on, in which shares at which step
mixture_checks what of a mixture Levanter only warns about, or passes over
optimizer      optimizers by name and their fields, the schedule of the learning rate, the rest of the loop
start          the weights or the state that the training starts from
lora           small factors beside the weights
types          a value of its type in each field
bounds         numbers within their bounds
precision      the numbers that a training computes with
settings       all of a config, checked when its step is created
trackers       where the metrics go besides metrics.jsonl
levanter_fields   the fields of Levanter's config that the training sets itself
"""
