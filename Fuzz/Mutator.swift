import Foundation

@_silgen_name("LLVMFuzzerMutate")
private func mutateBytes(_ data: UnsafeMutablePointer<UInt8>, _ count: Int, _ capacity: Int) -> Int

/// Alters one part of an archive with the fuzzer's own means and makes lengths, offset and checksum fit again. Mostly
/// values; sometimes the runs of objects; now and then the schema, whose every change leads away from the reader's
/// straight way; seldom the raw bytes.
@_cdecl("LLVMFuzzerCustomMutator")
public func mutate(_ data: UnsafeMutablePointer<UInt8>, _ count: Int, _ capacity: Int, _ seed: UInt32) -> Int {
  var random = Random(state: UInt64(seed))
  let choice = random.below(64)
  guard choice > 0, var parts = Parts(UnsafeRawBufferPointer(start: data, count: count)) else {
    return mutateBytes(data, count, capacity)
  }
  if choice < 3 {
    // Another root, whose schema then isn't the program's.
    parts.header[Root.numberOffset] = UInt8(random.below(8))
  } else {
    let schema: [Parts.Piece] = [.fixedTypes, .fixedTypes, .fixedCount, .furtherTypes, .rootType]
    let tables: [Parts.Piece] = [.runs, .runs, .objects, .keys, .keyTypes]
    let values: [Parts.Piece] = [.root, .values, .values, .references]
    let piece = choice < 12 ? schema[random.below(5)] : choice < 22 ? tables[random.below(5)] : values[random.below(4)]
    var bytes = parts[piece]
    // Room for what is inserted; the whole is cut to the capacity by being refused below.
    let room = bytes.count + 64
    let old = bytes.count
    bytes += [UInt8](repeating: 0, count: 64)
    let new = bytes.withUnsafeMutableBufferPointer { buffer in
      buffer.baseAddress.map { mutateBytes($0, old, room) } ?? 0
    }
    parts[piece] = Array(bytes.prefix(new))
  }
  let result = parts.assembled()
  guard result.count <= capacity else { return mutateBytes(data, count, capacity) }
  for (index, byte) in result.enumerated() { data[index] = byte }
  return result.count
}

/// SplitMix64.
private struct Random {
  var state: UInt64

  mutating func below(_ limit: UInt64) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((z ^ (z >> 31)) % limit)
  }
}
