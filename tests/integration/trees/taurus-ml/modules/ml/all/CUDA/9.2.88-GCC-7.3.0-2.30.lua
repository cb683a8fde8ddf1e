help([==[

Description
===========
Compiler and libraries for NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/cuda-toolkit
]==])

whatis([==[Name: CUDA]==])
whatis([==[Version: 9.2.88-GCC-7.3.0-2.30]==])
whatis([==[Description: Compiler and libraries for NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/cuda-toolkit]==])

local root = "/sw/installed/CUDA/9.2.88-GCC-7.3.0-2.30"

conflict("CUDA")

if not ( isloaded("GCC/7.3.0-2.30") ) then
    load("GCC/7.3.0-2.30")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("PATH", root)
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTCUDA", root)
setenv("EBVERSIONCUDA", "9.2.88")
setenv("EBDEVELCUDA", pathJoin(root, "easybuild/CUDA-9.2.88-GCC-7.3.0-2.30-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
