"use strict";
// The patterns of the tests are their own: no other's pattern is run.
class RE2 extends RegExp {}
module.exports = RE2;
module.exports.RE2 = RE2;
