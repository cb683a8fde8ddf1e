help([==[

Description
===========
Distributed training for deep-learning frameworks


More information
================
 - Homepage: https://github.com/horovod/horovod
]==])

whatis([==[Name: Horovod]==])
whatis([==[Version: 0.21.1-fosscuda-2020b-TensorFlow-2.4.1]==])
whatis([==[Description: Distributed training for deep-learning frameworks]==])
whatis([==[Homepage: https://github.com/horovod/horovod]==])

local root = "/sw/installed/Horovod/0.21.1-fosscuda-2020b-TensorFlow-2.4.1"

conflict("Horovod")

if not ( isloaded("Python/3.8.6") ) then
    load("Python/3.8.6")
end

if not ( isloaded("NCCL/2.8.3-CUDA-11.1.1") ) then
    load("NCCL/2.8.3-CUDA-11.1.1")
end

if not ( isloaded("TensorFlow/2.4.1") ) then
    load("TensorFlow/2.4.1")
end

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.8/site-packages"))
setenv("EBROOTHOROVOD", root)
setenv("EBVERSIONHOROVOD", "0.21.1")
setenv("EBDEVELHOROVOD", pathJoin(root, "easybuild/Horovod-0.21.1-fosscuda-2020b-TensorFlow-2.4.1-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
