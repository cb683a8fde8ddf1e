help([==[

Description
===========
Compiler and libraries for NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/cuda-toolkit
]==])

whatis([==[Name: CUDA]==])
whatis([==[Version: 10.1.243-GCC-8.3.0]==])
whatis([==[Description: Compiler and libraries for NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/cuda-toolkit]==])

local root = "/sw/installed/CUDA/10.1.243-GCC-8.3.0"

conflict("CUDA")

if not ( isloaded("GCC/8.3.0") ) then
    load("GCC/8.3.0")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("PATH", root)
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTCUDA", root)
setenv("EBVERSIONCUDA", "10.1.243")
setenv("EBDEVELCUDA", pathJoin(root, "easybuild/CUDA-10.1.243-GCC-8.3.0-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
