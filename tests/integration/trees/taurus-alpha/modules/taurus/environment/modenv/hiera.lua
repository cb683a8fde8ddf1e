help([==[

The software of the AMD nodes
]==])

whatis([==[Name: modenv]==])
whatis([==[Version: hiera]==])
whatis([==[Description: Switches to the software of the AMD nodes]==])

add_property("lmod", "sticky")

-- The trees lie beside this one, wherever they were copied to.
local trees = myFileName():gsub("/taurus/environment/modenv/.*$", "")

prepend_path("MODULEPATH", pathJoin(trees, "hiera/all/Core"))
