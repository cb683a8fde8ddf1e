help([==[

Description
===========
Anaconda's distribution of Python, with conda


More information
================
 - Homepage: https://www.anaconda.com/
]==])

whatis([==[Name: PythonAnaconda]==])
whatis([==[Version: 3.6]==])
whatis([==[Description: Anaconda's distribution of Python, with conda]==])
whatis([==[Homepage: https://www.anaconda.com/]==])

local root = "/sw/installed/PythonAnaconda/3.6"

conflict("PythonAnaconda")

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("PATH", root)
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTPYTHONANACONDA", root)
setenv("EBVERSIONPYTHONANACONDA", "3.6")
setenv("EBDEVELPYTHONANACONDA", pathJoin(root, "easybuild/PythonAnaconda-3.6-easybuild-devel"))

-- Built with EasyBuild version 3.8.1
