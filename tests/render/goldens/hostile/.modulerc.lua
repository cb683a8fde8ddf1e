-- The version that `module load hostile` means; replaced as a whole.
module_version("hostile/3", "default")
