-- The version that `module load allreduce-swap` means; replaced as a whole.
module_version("allreduce-swap/3", "default")
