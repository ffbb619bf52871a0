"""`python -m marin_assets.cli`, the same as `marin`."""

from marin_assets.cli.main import main

raise SystemExit(main())
