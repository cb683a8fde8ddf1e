-- envbuild 0.1.0 for debian-ppc64le
help(table.concat({
  "envbuild/0.1.0: build and prove deep-learning environments",
  "Site: debian-ppc64le (the default of --site).",
  "",
  "  envbuild recipes list",
  "  envbuild plan RECIPE",
  "  envbuild create RECIPE --root DIR",
  "",
  "This module adds the module trees of the published environments to MODULEPATH:",
  "  /opt/envbuild/debian-ppc64le/ppc64le/modulefiles",
}, "\n"))
whatis("Name: envbuild")
whatis("Version: 0.1.0")
whatis("Category: deep learning environment")

if mode() == "load" and not isFile("/opt/envbuild/debian-ppc64le/envbuild/0.1.0/bin/envbuild") then
  LmodError("envbuild: not installed in /opt/envbuild/debian-ppc64le/envbuild/0.1.0; see docs/rendering.md")
end
pushenv("ENVBUILD_SITE", "debian-ppc64le")
prepend_path("MODULEPATH", "/opt/envbuild/debian-ppc64le/ppc64le/modulefiles")
prepend_path("PATH", "/opt/envbuild/debian-ppc64le/envbuild/0.1.0/bin")
