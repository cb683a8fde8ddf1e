help([==[

Description
===========
Primitives of deep neural networks for NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/cudnn
]==])

whatis([==[Name: cuDNN]==])
whatis([==[Version: 8.0.4.30-CUDA-11.1.1]==])
whatis([==[Description: Primitives of deep neural networks for NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/cudnn]==])

local root = "/sw/installed/cuDNN/8.0.4.30-CUDA-11.1.1"

conflict("cuDNN")

if not ( isloaded("CUDAcore/11.1.1") ) then
    load("CUDAcore/11.1.1")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib64"))
setenv("EBROOTCUDNN", root)
setenv("EBVERSIONCUDNN", "8.0.4.30")
setenv("EBDEVELCUDNN", pathJoin(root, "easybuild/cuDNN-8.0.4.30-CUDA-11.1.1-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
