help([==[

Description
===========
Data sets, models and transformations for PyTorch


More information
================
 - Homepage: https://github.com/pytorch/vision
]==])

whatis([==[Name: torchvision]==])
whatis([==[Version: 0.7.0-fosscuda-2019b-Python-3.7.4-PyTorch-1.6.0]==])
whatis([==[Description: Data sets, models and transformations for PyTorch]==])
whatis([==[Homepage: https://github.com/pytorch/vision]==])

local root = "/sw/installed/torchvision/0.7.0-fosscuda-2019b-Python-3.7.4-PyTorch-1.6.0"

conflict("torchvision")

if not ( isloaded("fosscuda/2019b") ) then
    load("fosscuda/2019b")
end

if not ( isloaded("Python/3.7.4-GCCcore-8.3.0") ) then
    load("Python/3.7.4-GCCcore-8.3.0")
end

if not ( isloaded("SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4") ) then
    load("SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4")
end

if not ( isloaded("PyTorch/1.6.0-fosscuda-2019b-Python-3.7.4") ) then
    load("PyTorch/1.6.0-fosscuda-2019b-Python-3.7.4")
end

prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.7/site-packages"))
setenv("EBROOTTORCHVISION", root)
setenv("EBVERSIONTORCHVISION", "0.7.0")
setenv("EBDEVELTORCHVISION", pathJoin(root, "easybuild/torchvision-0.7.0-fosscuda-2019b-Python-3.7.4-PyTorch-1.6.0-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
