help([==[

Description
===========
Collective communication between NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/nccl
]==])

whatis([==[Name: NCCL]==])
whatis([==[Version: 2.8.3-GCCcore-10.2.0-CUDA-11.1.1]==])
whatis([==[Description: Collective communication between NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/nccl]==])

local root = "/sw/installed/NCCL/2.8.3-GCCcore-10.2.0-CUDA-11.1.1"

conflict("NCCL")

if not ( isloaded("CUDAcore/11.1.1") ) then
    load("CUDAcore/11.1.1")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
setenv("EBROOTNCCL", root)
setenv("EBVERSIONNCCL", "2.8.3")
setenv("EBDEVELNCCL", pathJoin(root, "easybuild/NCCL-2.8.3-GCCcore-10.2.0-CUDA-11.1.1-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
