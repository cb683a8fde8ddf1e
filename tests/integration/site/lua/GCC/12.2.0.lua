help([==[

Description
===========
The GNU Compiler Collection and binutils

More information
================
 - Homepage: https://gcc.gnu.org/
]==])

whatis([==[Description: The GNU Compiler Collection and binutils]==])
whatis([==[Homepage: https://gcc.gnu.org/]==])

local root = "@APPS@/GCC/12.2.0"

conflict("GCC")

depends_on("GCCcore/12.2.0")

setenv("EBROOTGCC", root)
setenv("EBVERSIONGCC", "12.2.0")
