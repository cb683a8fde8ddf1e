help([==[

Description
===========
Bundle of Python packages for scientific software

More information
================
 - Homepage: https://python.org/
]==])

whatis([==[Description: Bundle of Python packages for scientific software]==])
whatis([==[Homepage: https://python.org/]==])

local root = "@APPS@/SciPy-bundle/2023.02-gfbf-2022b"

conflict("SciPy-bundle")

depends_on("Python/@PYTHON@-GCCcore-12.2.0")

prepend_path("PYTHONPATH", pathJoin(root, "lib/python/site-packages"))
setenv("EBROOTSCIPYMINBUNDLE", root)
