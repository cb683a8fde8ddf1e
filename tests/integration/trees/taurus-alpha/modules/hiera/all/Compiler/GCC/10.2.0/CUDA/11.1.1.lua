help([==[

Description
===========
Compiler and libraries for NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/cuda-toolkit
]==])

whatis([==[Name: CUDA]==])
whatis([==[Version: 11.1.1-GCC-10.2.0]==])
whatis([==[Description: Compiler and libraries for NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/cuda-toolkit]==])

local root = "/sw/installed/CUDA/11.1.1-GCC-10.2.0"

conflict("CUDA")

if not ( isloaded("CUDAcore/11.1.1") ) then
    load("CUDAcore/11.1.1")
end

local trees = myFileName():gsub("/hiera/all/.*$", "/hiera/all")
prepend_path("MODULEPATH", pathJoin(trees, "Compiler/GCC-CUDA/10.2.0-11.1.1"))

setenv("EBROOTCUDA", root)
setenv("EBVERSIONCUDA", "11.1.1")
setenv("EBDEVELCUDA", pathJoin(root, "easybuild/CUDA-11.1.1-GCC-10.2.0-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
