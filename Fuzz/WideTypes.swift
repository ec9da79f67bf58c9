import Foundation
import KeepsakeArchive

/// A class with more fields than fit into a machine word's bits: which of them are references is then looked up in
/// another way.
@Archivable final class Wide: Linked {
  var first: Wide? { didSet { Registry.note(self) } }
  var f0: UInt8 = 0, f1: UInt8 = 0, f2: UInt8 = 0, f3: UInt8 = 0, f4: UInt8 = 0, f5: UInt8 = 0, f6: UInt8 = 0,
    f7: UInt8 = 0, f8: UInt8 = 0,
    f9: UInt8 = 0, f10: UInt8 = 0
  var f11: UInt8 = 0, f12: UInt8 = 0, f13: UInt8 = 0, f14: UInt8 = 0, f15: UInt8 = 0, f16: UInt8 = 0, f17: UInt8 = 0,
    f18: UInt8 = 0,
    f19: UInt8 = 0, f20: UInt8 = 0, f21: UInt8 = 0
  var f22: UInt8 = 0, f23: UInt8 = 0, f24: UInt8 = 0, f25: UInt8 = 0, f26: UInt8 = 0, f27: UInt8 = 0, f28: UInt8 = 0,
    f29: UInt8 = 0,
    f30: UInt8 = 0, f31: UInt8 = 0, f32: UInt8 = 0
  var f33: UInt8 = 0, f34: UInt8 = 0, f35: UInt8 = 0, f36: UInt8 = 0, f37: UInt8 = 0, f38: UInt8 = 0, f39: UInt8 = 0,
    f40: UInt8 = 0,
    f41: UInt8 = 0, f42: UInt8 = 0, f43: UInt8 = 0
  var f44: UInt8 = 0, f45: UInt8 = 0, f46: UInt8 = 0, f47: UInt8 = 0, f48: UInt8 = 0, f49: UInt8 = 0, f50: UInt8 = 0,
    f51: UInt8 = 0,
    f52: UInt8 = 0, f53: UInt8 = 0, f54: UInt8 = 0
  var f55: UInt8 = 0, f56: UInt8 = 0, f57: UInt8 = 0, f58: UInt8 = 0, f59: UInt8 = 0, f60: UInt8 = 0, f61: UInt8 = 0,
    f62: UInt8 = 0,
    f63: UInt8 = 0, f64: UInt8 = 0, f65: UInt8 = 0
  weak var near: Wide?
  var last: [Wide] = [] { didSet { Registry.note(self) } }
  var end = "e"
  func unlink() {
    first = nil
    last = []
  }
}

@Archivable struct Wides {
  var one: Wide?
  var all: [Wide] = []
}

extension Changed {
  @Archivable(name: "Wide") final class Wide: Linked {
    var end: String
    var last: [Wide?] = [] { didSet { Registry.note(self) } }
    var f65: Int16 = 0, f63: Int16 = 0, f62: Int16 = 0, f61: Int16 = 0, f60: Int16 = 0, f59: Int16 = 0, f58: Int16 = 0,
      f57: Int16 = 0,
      f56: Int16 = 0, f55: Int16 = 0, f54: Int16 = 0
    var f53: Int16 = 0, f52: Int16 = 0, f51: Int16 = 0, f50: Int16 = 0, f49: Int16 = 0, f48: Int16 = 0, f47: Int16 = 0,
      f46: Int16 = 0,
      f45: Int16 = 0, f44: Int16 = 0, f43: Int16 = 0
    var f42: Int16 = 0, f41: Int16 = 0, f40: Int16 = 0, f39: Int16 = 0, f38: Int16 = 0, f37: Int16 = 0, f36: Int16 = 0,
      f35: Int16 = 0,
      f34: Int16 = 0, f33: Int16 = 0, f32: Int16 = 0
    var f31: Int16 = 0, f30: Int16 = 0, f29: Int16 = 0, f28: Int16 = 0, f27: Int16 = 0, f26: Int16 = 0, f25: Int16 = 0,
      f24: Int16 = 0,
      f23: Int16 = 0, f22: Int16 = 0, f21: Int16 = 0
    var f20: Int16 = 0, f19: Int16 = 0, f18: Int16 = 0, f17: Int16 = 0, f16: Int16 = 0, f15: Int16 = 0, f14: Int16 = 0,
      f13: Int16 = 0,
      f12: Int16 = 0, f11: Int16 = 0, f10: Int16 = 0
    var f9: Int16 = 0, f8: Int16 = 0, f7: Int16 = 0, f6: Int16 = 0, f5: Int16 = 0, f4: Int16 = 0, f2: Int16 = 0,
      f1: Int16 = 0,
      f0: Int16 = 0
    var first: Wide? { didSet { Registry.note(self) } }
    init() { end = "" }
    func unlink() {
      first = nil
      last = []
    }
  }

  @Archivable struct Wides {
    var all: [Wide] = []
    var one: Wide?
  }
}
