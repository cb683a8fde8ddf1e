help([==[

Description
===========
The Python language and some of its packages


More information
================
 - Homepage: https://python.org/
]==])

whatis([==[Name: Python]==])
whatis([==[Version: 3.7.4-GCCcore-8.3.0]==])
whatis([==[Description: The Python language and some of its packages]==])
whatis([==[Homepage: https://python.org/]==])

local root = "/sw/installed/Python/3.7.4-GCCcore-8.3.0"

conflict("Python")

if not ( isloaded("GCCcore/8.3.0") ) then
    load("GCCcore/8.3.0")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PKG_CONFIG_PATH", pathJoin(root, "lib/pkgconfig"))
setenv("EBROOTPYTHON", root)
setenv("EBVERSIONPYTHON", "3.7.4")
setenv("EBDEVELPYTHON", pathJoin(root, "easybuild/Python-3.7.4-GCCcore-8.3.0-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
