help([==[

Description
===========
Primitives of deep neural networks for NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/cudnn
]==])

whatis([==[Name: cuDNN]==])
whatis([==[Version: 7.6.4.38-gcccuda-2019b]==])
whatis([==[Description: Primitives of deep neural networks for NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/cudnn]==])

local root = "/sw/installed/cuDNN/7.6.4.38-gcccuda-2019b"

conflict("cuDNN")

if not ( isloaded("gcccuda/2019b") ) then
    load("gcccuda/2019b")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib64"))
setenv("EBROOTCUDNN", root)
setenv("EBVERSIONCUDNN", "7.6.4.38")
setenv("EBDEVELCUDNN", pathJoin(root, "easybuild/cuDNN-7.6.4.38-gcccuda-2019b-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
