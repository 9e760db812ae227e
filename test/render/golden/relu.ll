source_filename = "relu"
target triple = "x86_64-unknown-linux-gnu"

define void @relu(ptr noalias nocapture readonly %args, i64 %chunk_begin, i64 %chunk_end) #0 {
entry:
  %bufs.at = getelementptr inbounds i8, ptr %args, i64 0
  %bufs = load ptr, ptr %bufs.at, align 8, !invariant.load !1
  %b0.at = getelementptr inbounds ptr, ptr %bufs, i64 0
  %b0 = load ptr, ptr %b0.at, align 8, !invariant.load !1
  %b1.at = getelementptr inbounds ptr, ptr %bufs, i64 1
  %b1 = load ptr, ptr %b1.at, align 8, !invariant.load !1
  %t0 = icmp slt i64 %chunk_begin, %chunk_end
  br i1 %t0, label %loop0, label %done0
loop0:
  %v0 = phi i64 [ %chunk_begin, %entry ], [ %next0, %latch0 ]
  %v3 = mul nsw i64 %v0, 16
  %v4 = add nsw i64 %v3, 0
  %t1 = getelementptr inbounds float, ptr %b0, i64 %v4
  %v5 = load <16 x float>, ptr %t1, align 4, !alias.scope !2, !noalias !3
  %v10 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v5, <16 x float> splat (float 0x3FE0000000000000), <16 x float> splat (float 0x4008000000000000))
  %v13 = fcmp olt <16 x float> %v10, zeroinitializer
  %v14 = select <16 x i1> %v13, <16 x float> zeroinitializer, <16 x float> %v10
  %t2 = getelementptr inbounds float, ptr %b1, i64 %v4
  store <16 x float> %v14, ptr %t2, align 4, !alias.scope !4, !noalias !5
  br label %latch0
latch0:
  %next0 = add nsw i64 %v0, 1
  %t3 = icmp slt i64 %next0, %chunk_end
  br i1 %t3, label %loop0, label %done0, !llvm.loop !0
done0:
  ret void
}

attributes #0 = { nounwind "no-builtins" "target-cpu"="x86-64" "tune-cpu"="generic" "target-features"="+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse3,+sse4.1,+sse4.2,+ssse3" "prefer-vector-width"="256" "min-legal-vector-width"="256" }

!0 = distinct !{!0, !6, !7}
!1 = !{}
!2 = !{!9}
!3 = !{!10}
!4 = !{!10}
!5 = !{!9}
!6 = !{!"llvm.loop.unroll.disable"}
!7 = !{!"llvm.loop.vectorize.enable", i1 false}
!8 = distinct !{!8}
!9 = distinct !{!9, !8}
!10 = distinct !{!10, !8}
