help([==[

Description
===========
BLAS and LAPACK


More information
================
 - Homepage: https://xianyi.github.io/OpenBLAS/
]==])

whatis([==[Name: OpenBLAS]==])
whatis([==[Version: 0.3.7-GCC-8.3.0]==])
whatis([==[Description: BLAS and LAPACK]==])
whatis([==[Homepage: https://xianyi.github.io/OpenBLAS/]==])

local root = "/sw/installed/OpenBLAS/0.3.7-GCC-8.3.0"

conflict("OpenBLAS")

if not ( isloaded("GCC/8.3.0") ) then
    load("GCC/8.3.0")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
setenv("EBROOTOPENBLAS", root)
setenv("EBVERSIONOPENBLAS", "0.3.7")
setenv("EBDEVELOPENBLAS", pathJoin(root, "easybuild/OpenBLAS-0.3.7-GCC-8.3.0-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
