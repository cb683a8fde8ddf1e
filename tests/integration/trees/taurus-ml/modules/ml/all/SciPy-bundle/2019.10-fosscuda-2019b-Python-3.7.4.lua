help([==[

Description
===========
NumPy, SciPy, pandas and what they need


More information
================
 - Homepage: https://python.org/
]==])

whatis([==[Name: SciPy-bundle]==])
whatis([==[Version: 2019.10-fosscuda-2019b-Python-3.7.4]==])
whatis([==[Description: NumPy, SciPy, pandas and what they need]==])
whatis([==[Homepage: https://python.org/]==])

local root = "/sw/installed/SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4"

conflict("SciPy-bundle")

if not ( isloaded("fosscuda/2019b") ) then
    load("fosscuda/2019b")
end

if not ( isloaded("Python/3.7.4-GCCcore-8.3.0") ) then
    load("Python/3.7.4-GCCcore-8.3.0")
end

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.7/site-packages"))
setenv("EBROOTSCIPYMINBUNDLE", root)
setenv("EBVERSIONSCIPYMINBUNDLE", "2019.10")
setenv("EBDEVELSCIPYMINBUNDLE", pathJoin(root, "easybuild/SciPy-bundle-2019.10-fosscuda-2019b-Python-3.7.4-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
