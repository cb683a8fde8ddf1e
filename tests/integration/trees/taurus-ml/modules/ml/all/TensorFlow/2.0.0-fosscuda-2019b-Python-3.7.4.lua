help([==[

Description
===========
Machine learning with data flow graphs


More information
================
 - Homepage: https://www.tensorflow.org/
]==])

whatis([==[Name: TensorFlow]==])
whatis([==[Version: 2.0.0-fosscuda-2019b-Python-3.7.4]==])
whatis([==[Description: Machine learning with data flow graphs]==])
whatis([==[Homepage: https://www.tensorflow.org/]==])

local root = "/sw/installed/TensorFlow/2.0.0-fosscuda-2019b-Python-3.7.4"

conflict("TensorFlow")

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

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.7/site-packages"))
setenv("EBROOTTENSORFLOW", root)
setenv("EBVERSIONTENSORFLOW", "2.0.0")
setenv("EBDEVELTENSORFLOW", pathJoin(root, "easybuild/TensorFlow-2.0.0-fosscuda-2019b-Python-3.7.4-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
