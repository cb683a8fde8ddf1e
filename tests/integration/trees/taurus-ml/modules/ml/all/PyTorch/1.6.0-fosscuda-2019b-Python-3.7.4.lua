help([==[

Description
===========
Tensors and dynamic neural networks in Python


More information
================
 - Homepage: https://pytorch.org/
]==])

whatis([==[Name: PyTorch]==])
whatis([==[Version: 1.6.0-fosscuda-2019b-Python-3.7.4]==])
whatis([==[Description: Tensors and dynamic neural networks in Python]==])
whatis([==[Homepage: https://pytorch.org/]==])

local root = "/sw/installed/PyTorch/1.6.0-fosscuda-2019b-Python-3.7.4"

conflict("PyTorch")

if not ( isloaded("fosscuda/2019b") ) then
    load("fosscuda/2019b")
end

if not ( isloaded("Python/3.7.4-GCCcore-8.3.0") ) then
    load("Python/3.7.4-GCCcore-8.3.0")
end

if not ( isloaded("SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4") ) then
    load("SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4")
end

if not ( isloaded("cuDNN/7.6.4.38-gcccuda-2019b") ) then
    load("cuDNN/7.6.4.38-gcccuda-2019b")
end

if not ( isloaded("NCCL/2.4.8-gcccuda-2019b") ) then
    load("NCCL/2.4.8-gcccuda-2019b")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.7/site-packages"))
setenv("EBROOTPYTORCH", root)
setenv("EBVERSIONPYTORCH", "1.6.0")
setenv("EBDEVELPYTORCH", pathJoin(root, "easybuild/PyTorch-1.6.0-fosscuda-2019b-Python-3.7.4-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
