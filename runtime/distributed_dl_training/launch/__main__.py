"""``python -m distributed_dl_training.launch``."""

import sys

from distributed_dl_training.launch import main

sys.exit(main())
