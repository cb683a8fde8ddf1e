-- envbuild 0.1.0 for summit
help(table.concat({
  "envbuild/0.1.0: build and prove deep-learning environments",
  "Site: summit (the default of --site).",
  "",
  "  envbuild recipes list",
  "  envbuild plan RECIPE",
  "  envbuild create RECIPE --root DIR",
  "",
  "This module adds the module trees of the published environments to MODULEPATH:",
  "  /ccs/proj/envbuild/summit/ppc64le/modulefiles",
}, "\n"))
whatis("Name: envbuild")
whatis("Version: 0.1.0")
whatis("Category: deep learning environment")

if mode() == "load" and not isFile("/ccs/proj/envbuild/summit/envbuild/0.1.0/bin/envbuild") then
  LmodError("envbuild: not installed in /ccs/proj/envbuild/summit/envbuild/0.1.0; see docs/rendering.md")
end
pushenv("ENVBUILD_SITE", "summit")
prepend_path("MODULEPATH", "/ccs/proj/envbuild/summit/ppc64le/modulefiles")
prepend_path("PATH", "/ccs/proj/envbuild/summit/envbuild/0.1.0/bin")
