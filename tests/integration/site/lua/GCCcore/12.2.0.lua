help([==[

Description
===========
The GNU Compiler Collection

More information
================
 - Homepage: https://gcc.gnu.org/
]==])

whatis([==[Description: The GNU Compiler Collection]==])
whatis([==[Homepage: https://gcc.gnu.org/]==])

local root = "@APPS@/GCCcore/12.2.0"

conflict("GCCcore")

setenv("EBROOTGCCCORE", root)
setenv("EBVERSIONGCCCORE", "12.2.0")
