help([==[

Description
===========
Discrete Fourier transforms


More information
================
 - Homepage: http://www.fftw.org
]==])

whatis([==[Name: FFTW]==])
whatis([==[Version: 3.3.8-gompic-2019a]==])
whatis([==[Description: Discrete Fourier transforms]==])
whatis([==[Homepage: http://www.fftw.org]==])

local root = "/sw/installed/FFTW/3.3.8-gompic-2019a"

conflict("FFTW")

if not ( isloaded("gompic/2019a") ) then
    load("gompic/2019a")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTFFTW", root)
setenv("EBVERSIONFFTW", "3.3.8")
setenv("EBDEVELFFTW", pathJoin(root, "easybuild/FFTW-3.3.8-gompic-2019a-easybuild-devel"))

-- Built with EasyBuild version 3.9.4
