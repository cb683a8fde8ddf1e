help([==[

Description
===========
Machine learning with data flow graphs


More information
================
 - Homepage: https://www.tensorflow.org/
]==])

whatis([==[Name: TensorFlow]==])
whatis([==[Version: 2.4.1-fosscuda-2020b]==])
whatis([==[Description: Machine learning with data flow graphs]==])
whatis([==[Homepage: https://www.tensorflow.org/]==])

local root = "/sw/installed/TensorFlow/2.4.1-fosscuda-2020b"

conflict("TensorFlow")

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

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.8/site-packages"))
setenv("EBROOTTENSORFLOW", root)
setenv("EBVERSIONTENSORFLOW", "2.4.1")
setenv("EBDEVELTENSORFLOW", pathJoin(root, "easybuild/TensorFlow-2.4.1-fosscuda-2020b-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
