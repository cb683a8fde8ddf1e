"""Parts of ``horovod.common`` that programs import."""
