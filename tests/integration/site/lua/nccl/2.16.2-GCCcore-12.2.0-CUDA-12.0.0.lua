help([==[

Description
===========
NCCL, built against another Open MPI than the site's default

More information
================
 - Homepage: https://developer.nvidia.com/nccl
]==])

whatis([==[Description: NCCL, built against another Open MPI than the site's default]==])
whatis([==[Homepage: https://developer.nvidia.com/nccl]==])

local root = "@APPS@/nccl/2.16.2-GCCcore-12.2.0-CUDA-12.0.0"

conflict("nccl")

load("OpenMPI/3.1.4-GCC-12.2.0")

setenv("EBROOTNCCL", root)
setenv("EBVERSIONNCCL", "2.16.2")
