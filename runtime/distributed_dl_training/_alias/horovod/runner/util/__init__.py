"""Parts of ``horovod.runner.util`` that programs import."""
