-- The version that `module load allreduce` means; replaced as a whole.
module_version("allreduce/3", "default")
