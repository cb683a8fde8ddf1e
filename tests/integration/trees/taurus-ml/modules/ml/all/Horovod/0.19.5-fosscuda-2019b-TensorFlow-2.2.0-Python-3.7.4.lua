help([==[

Description
===========
Distributed training for deep-learning frameworks


More information
================
 - Homepage: https://github.com/horovod/horovod
]==])

whatis([==[Name: Horovod]==])
whatis([==[Version: 0.19.5-fosscuda-2019b-TensorFlow-2.2.0-Python-3.7.4]==])
whatis([==[Description: Distributed training for deep-learning frameworks]==])
whatis([==[Homepage: https://github.com/horovod/horovod]==])

local root = "/sw/installed/Horovod/0.19.5-fosscuda-2019b-TensorFlow-2.2.0-Python-3.7.4"

conflict("Horovod")

if not ( isloaded("fosscuda/2019b") ) then
    load("fosscuda/2019b")
end

if not ( isloaded("Python/3.7.4-GCCcore-8.3.0") ) then
    load("Python/3.7.4-GCCcore-8.3.0")
end

if not ( isloaded("NCCL/2.4.8-gcccuda-2019b") ) then
    load("NCCL/2.4.8-gcccuda-2019b")
end

if not ( isloaded("TensorFlow/2.2.0-fosscuda-2019b-Python-3.7.4") ) then
    load("TensorFlow/2.2.0-fosscuda-2019b-Python-3.7.4")
end

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.7/site-packages"))
setenv("EBROOTHOROVOD", root)
setenv("EBVERSIONHOROVOD", "0.19.5")
setenv("EBDEVELHOROVOD", pathJoin(root, "easybuild/Horovod-0.19.5-fosscuda-2019b-TensorFlow-2.2.0-Python-3.7.4-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
