help([==[

Description
===========
NumPy, SciPy, pandas and what they need


More information
================
 - Homepage: https://python.org/
]==])

whatis([==[Name: SciPy-bundle]==])
whatis([==[Version: 2020.11-fosscuda-2020b]==])
whatis([==[Description: NumPy, SciPy, pandas and what they need]==])
whatis([==[Homepage: https://python.org/]==])

local root = "/sw/installed/SciPy-bundle/2020.11-fosscuda-2020b"

conflict("SciPy-bundle")

if not ( isloaded("Python/3.8.6") ) then
    load("Python/3.8.6")
end

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3.8/site-packages"))
setenv("EBROOTSCIPYMINBUNDLE", root)
setenv("EBVERSIONSCIPYMINBUNDLE", "2020.11")
setenv("EBDEVELSCIPYMINBUNDLE", pathJoin(root, "easybuild/SciPy-bundle-2020.11-fosscuda-2020b-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
