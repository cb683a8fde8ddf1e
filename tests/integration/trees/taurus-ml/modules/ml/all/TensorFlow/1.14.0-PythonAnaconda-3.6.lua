help([==[

Description
===========
Machine learning with data flow graphs


More information
================
 - Homepage: https://www.tensorflow.org/
]==])

whatis([==[Name: TensorFlow]==])
whatis([==[Version: 1.14.0-PythonAnaconda-3.6]==])
whatis([==[Description: Machine learning with data flow graphs]==])
whatis([==[Homepage: https://www.tensorflow.org/]==])

local root = "/sw/installed/TensorFlow/1.14.0-PythonAnaconda-3.6"

conflict("TensorFlow")

if not ( isloaded("PythonAnaconda/3.6") ) then
    load("PythonAnaconda/3.6")
end

prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.6/site-packages"))
setenv("EBROOTTENSORFLOW", root)
setenv("EBVERSIONTENSORFLOW", "1.14.0")
setenv("EBDEVELTENSORFLOW", pathJoin(root, "easybuild/TensorFlow-1.14.0-PythonAnaconda-3.6-easybuild-devel"))

-- Built with EasyBuild version 3.8.1
