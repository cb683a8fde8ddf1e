help([==[

Description
===========
Compiler and libraries for NVIDIA GPUs, bound to no host compiler


More information
================
 - Homepage: https://developer.nvidia.com/cuda-toolkit
]==])

whatis([==[Name: CUDAcore]==])
whatis([==[Version: 11.1.1]==])
whatis([==[Description: Compiler and libraries for NVIDIA GPUs, bound to no host compiler]==])
whatis([==[Homepage: https://developer.nvidia.com/cuda-toolkit]==])

local root = "/sw/installed/CUDAcore/11.1.1"

conflict("CUDAcore")

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("PATH", root)
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTCUDACORE", root)
setenv("EBVERSIONCUDACORE", "11.1.1")
setenv("EBDEVELCUDACORE", pathJoin(root, "easybuild/CUDAcore-11.1.1-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
