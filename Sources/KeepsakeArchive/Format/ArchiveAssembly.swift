import Foundation

/// Assembles an archive once all values are written: sections, footer, checksum.
enum ArchiveAssembly {
  static func finish(_ output: inout ArchiveWriter, _ core: WriterCore, rootEnd: Int) throws -> Data {
    let order = try core.buildOrder()
    let count = core.writtenCount
    let valuesEnd = output.offset
    let referencesEnd = output.otherOffset
    if let order {
      func pieces(_ start: (WriterScratch.Written) -> Int, _ end: Int) -> [Range<Int>] {
        order.map { position in
          let index = Int(position)
          return start(core.written(index))..<(index + 1 < count ? start(core.written(index + 1)) : end)
        }
      }
      output.reorder(
        root: rootEnd, values: pieces({ $0.values }, valuesEnd), references: pieces({ $0.references }, referencesEnd))
    }
    output.appendOther()
    let footer = output.offset
    putSchema(&output, core)
    output.putVarint(UInt64(rootEnd - ArchiveLayout.headerBytes))
    output.putVarint(UInt64(valuesEnd - rootEnd))
    output.putVarint(UInt64(referencesEnd))
    output.putVarint(UInt64(core.objectCount))
    putRuns(&output, core, order)
    output.putFixed(UInt64(footer))
    guard output.offset + 8 <= core.limits.archiveBytes else {
      throw ArchiveError(
        .limit, "The archive would take \(output.offset + 8) bytes; the limit is \(core.limits.archiveBytes)")
    }
    return output.sealed(core)
  }

  private static func putSchema(_ output: inout ArchiveWriter, _ core: WriterCore) {
    let compiled = core.compiled
    if core.isStatic {
      output.putBytes(compiled.footerHead)
      return
    }
    var bytes: [UInt8] = []
    let dynamic = core.dynamicSchema
    Varint.append(UInt64(compiled.typeCount), to: &bytes)
    Varint.append(UInt64(compiled.bytes.count), to: &bytes)
    bytes += compiled.bytes
    Varint.append(UInt64(dynamic.count), to: &bytes)
    bytes += dynamic.bytes
    core.schema.appendExpression(compiled.root, to: &bytes)
    Varint.append(UInt64(core.names.count), to: &bytes)
    for name in core.names { Varint.append(name, to: &bytes) }
    Varint.append(UInt64(core.wires.count), to: &bytes)
    for node in core.wires { core.schema.appendExpression(node, to: &bytes) }
    bytes.withUnsafeBytes { output.putBytes($0) }
  }

  /// Writes the runs: objects of one class that the decoder builds consecutively, as the class, the count, and either
  /// the first number or the differences between the numbers.
  private static func putRuns(_ output: inout ArchiveWriter, _ core: WriterCore, _ order: [Int32]?) {
    let count = core.writtenCount
    if order == nil, let first = core.onlyRun {
      output.putVarint(1)
      output.putVarint(UInt64(first.type))
      output.putVarint(UInt64(count))
      output.putByte(0)
      output.putVarint(UInt64(first.id) << 1)
      return
    }
    func object(_ place: Int) -> WriterScratch.Written { core.written(order.map { Int($0[place]) } ?? place) }
    func end(from start: Int) -> Int {
      let type = object(start).type
      var end = start + 1
      while end < count, object(end).type == type { end += 1 }
      return end
    }
    var runs: UInt64 = 0
    var start = 0
    while start < count {
      runs += 1
      start = end(from: start)
    }
    output.putVarint(runs)
    start = 0
    while start < count {
      let end = end(from: start)
      let first = object(start).id
      var isContiguous = true
      for place in start..<end where object(place).id != first &+ Int32(truncatingIfNeeded: place - start) {
        isContiguous = false
      }
      output.putVarint(UInt64(object(start).type))
      output.putVarint(UInt64(end - start))
      output.putByte(isContiguous ? 0 : 1)
      var last: Int32 = 0
      for place in start..<(isContiguous ? start + 1 : end) {
        let step = Int64(object(place).id) - Int64(last)
        output.putVarint(UInt64(bitPattern: (step << 1) ^ (step >> 63)))
        last = object(place).id
      }
      start = end
    }
  }
}
