help([==[

Description
===========
Tensors and dynamic neural networks in Python


More information
================
 - Homepage: https://pytorch.org/
]==])

whatis([==[Name: PyTorch]==])
whatis([==[Version: 1.9.0-fosscuda-2020b]==])
whatis([==[Description: Tensors and dynamic neural networks in Python]==])
whatis([==[Homepage: https://pytorch.org/]==])

local root = "/sw/installed/PyTorch/1.9.0-fosscuda-2020b"

conflict("PyTorch")

if not ( isloaded("cuDNN/8.0.4.30-CUDA-11.1.1") ) then
    load("cuDNN/8.0.4.30-CUDA-11.1.1")
end

if not ( isloaded("NCCL/2.8.3-CUDA-11.1.1") ) then
    load("NCCL/2.8.3-CUDA-11.1.1")
end

if not ( isloaded("Python/3.8.6") ) then
    load("Python/3.8.6")
end

if not ( isloaded("SciPy-bundle/2020.11") ) then
    load("SciPy-bundle/2020.11")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.8/site-packages"))
setenv("EBROOTPYTORCH", root)
setenv("EBVERSIONPYTORCH", "1.9.0")
setenv("EBDEVELPYTORCH", pathJoin(root, "easybuild/PyTorch-1.9.0-fosscuda-2020b-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
