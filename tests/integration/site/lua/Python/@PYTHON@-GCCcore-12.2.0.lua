help([==[

Description
===========
Python is a programming language

More information
================
 - Homepage: https://python.org/
]==])

whatis([==[Description: Python is a programming language]==])
whatis([==[Homepage: https://python.org/]==])

local root = "@PYTHON_PREFIX@"

conflict("Python")

if mode() == "unload" or not isloaded("GCCcore/12.2.0") then
    load("GCCcore/12.2.0")
end

prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTPYTHON", root)
setenv("EBVERSIONPYTHON", "@PYTHON@")
