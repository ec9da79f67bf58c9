#if Cloud
import KeepsakeInspection
import KeepsakeInterchange

/// Finds which objects of a keyed archive are no longer one object in another, or are no longer different ones.
///
/// Only objects count that can be told apart by what happens to them: two texts that are equal are as good as one.
struct KeyedSharing {
  private struct Counterparts {
    var objects: Set<UInt64> = []
    /// How often it is written in place, each time another one.
    var inPlace = 0
    var keepsClass = true
    var path: String

    var count: Int { objects.count + inPlace }
  }

  /// By the old archive's numbers.
  private var counterparts: [UInt64: Counterparts] = [:]

  /// Notes what an object was compared with.
  mutating func note(_ old: UInt64?, _ new: UInt64?, keepsClass: Bool, at path: String) {
    guard let old, old != 0 else { return }
    var known = counterparts[old] ?? Counterparts(path: path)
    if let new { known.objects.insert(new) } else { known.inPlace += 1 }
    if !keepsClass { known.keepsClass = false }
    counterparts[old] = known
  }

  /// Returns what was lost.
  func losses(in archive: KeyedArchive, as form: KeyedFidelity.Form) throws -> [PlainForm.Loss] {
    var losses: [PlainForm.Loss] = []
    var owners: [UInt64: UInt64] = [:]
    for (uid, found) in counterparts.sorted(by: { $0.key < $1.key }) {
      guard uid < UInt64(archive.objects.count) else { continue }
      let object = archive.objects[Int(uid)]
      guard let name = KeyedClasses.name(of: object, in: archive.objects), !name.isOfValue else { continue }
      // Copies of others whose class isn't kept are reported when values are written.
      if try found.count > 1 && (form == .objects || found.keepsClass || archive.showing(object) == .value) {
        losses.append(
          .init(
            what: "\(name.name.prefix(80)), which comes back as several objects", count: found.count - 1,
            path: found.path))
      }
      for other in found.objects where found.keepsClass && owners.updateValue(uid, forKey: other) != nil {
        losses.append(
          .init(what: "\(name.name.prefix(80)), which comes back as one with another", count: 1, path: found.path))
      }
    }
    return losses
  }
}
#endif
