"""The back end that runs each step as a job of a Ray cluster; below it the Jobs API, the code, the local cluster.

May import `marin_resources.storage`, `wire` and the packages of `ray_tpu` below it (`worker`, `log`, `environment`)."""
