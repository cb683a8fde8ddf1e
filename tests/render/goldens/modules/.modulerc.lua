-- The version that `module load allreduce-modules` means; replaced as a whole.
module_version("allreduce-modules/3", "default")
