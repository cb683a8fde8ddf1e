help([==[

Description
===========
Primitives of deep neural networks for NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/cudnn
]==])

whatis([==[Name: cuDNN]==])
whatis([==[Version: 7.1.4.18-fosscuda-2018b]==])
whatis([==[Description: Primitives of deep neural networks for NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/cudnn]==])

local root = "/sw/installed/cuDNN/7.1.4.18-fosscuda-2018b"

conflict("cuDNN")

if not ( isloaded("fosscuda/2018b") ) then
    load("fosscuda/2018b")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib64"))
setenv("EBROOTCUDNN", root)
setenv("EBVERSIONCUDNN", "7.1.4.18")
setenv("EBDEVELCUDNN", pathJoin(root, "easybuild/cuDNN-7.1.4.18-fosscuda-2018b-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
