help([==[

Description
===========
Compiler and libraries for NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/cuda-toolkit
]==])

whatis([==[Name: CUDA]==])
whatis([==[Version: 10.1.105-GCC-8.2.0-2.31.1]==])
whatis([==[Description: Compiler and libraries for NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/cuda-toolkit]==])

local root = "/sw/installed/CUDA/10.1.105-GCC-8.2.0-2.31.1"

conflict("CUDA")

if not ( isloaded("GCC/8.2.0-2.31.1") ) then
    load("GCC/8.2.0-2.31.1")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("PATH", root)
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTCUDA", root)
setenv("EBVERSIONCUDA", "10.1.105")
setenv("EBDEVELCUDA", pathJoin(root, "easybuild/CUDA-10.1.105-GCC-8.2.0-2.31.1-easybuild-devel"))

-- Built with EasyBuild version 3.9.4
