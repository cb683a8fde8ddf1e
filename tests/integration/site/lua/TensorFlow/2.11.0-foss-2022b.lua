help([==[

Description
===========
An open-source software library for machine intelligence

More information
================
 - Homepage: https://www.tensorflow.org/
]==])

whatis([==[Description: An open-source software library for machine intelligence]==])
whatis([==[Homepage: https://www.tensorflow.org/]==])

local root = "@APPS@/TensorFlow/2.11.0-foss-2022b"

conflict("TensorFlow")

depends_on("SciPy-bundle/2023.02-gfbf-2022b")

setenv("EBROOTTENSORFLOW", root)
